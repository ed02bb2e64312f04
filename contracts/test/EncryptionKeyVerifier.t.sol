// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { CommitteeRegistry } from "../src/CommitteeRegistry.sol";
import { EncryptionKeyVerifier } from "../src/EncryptionKeyVerifier.sol";
import { GtResidues } from "../src/libraries/GtResidues.sol";
import { BlsSigner } from "./helpers/BlsSigner.sol";
import { Deployment } from "./helpers/Deployment.sol";

contract EncryptionKeyVerifierTest is Deployment {
    /// @dev A random element of F_p12 to the power (p^6 − 1)(p^2 + 1)(p^4 − p^2 + 1)/r.
    bytes internal constant MEMBER = hex"0fd45517c7f4b4c0af6d579adc5663d609295dc9a43765ee812e6fbf4a1ccf445cb0f46652bbd96f3129b3512f081a45155dde2496d6611f4cb3dc1db2398849c5c23a0502f0d74977fb7f1b0014e3d415e1938829203489f58413e97fba3781"
        hex"0763f9dfda72a1dc8ebff526609ec1b366796a52843b9ef5d41727bd4067e0068069a1cac5747b22e991ac30d951c9561164f461d693323d97d65404f138e0427e9d3679148d42382925a30b920b16635085f068978aea8bb35ac26f1b64052f"
        hex"0a1372ab0b560add2a189fbcb4cb10e572fcd49c55f54fea4d78d78e5930bec6b238a9d37003a9b598ae140684e57f3710068e1fe6722eb89b0f1dd61ea50bb2da33a596b0967376032058d39ed93a7f5edbff1918ca94d2c0a3b93cd9fdaf02"
        hex"128593518f41598f41fa034a9637f5ba4ff4be45620427a2a2a72d61b88ce1c637e23f7d275035ae7191b51bf2e8ab8400fceb91c80f9d35a4199a25280d003b127176b16662d42803e129b0b28544f4272fcc3c03540fbf974f1a313b1c41c1"
        hex"07c5b9ccd4ce55e19764b77af4fcc7b7a38aa47ee6a2eb68dcc8d87bae9cae355f96af2283a6e6a5b1c21a122123b4900d144de2955f063bc8b4d8a3d80a9995713d7574da1747dc9b04a4d205d8ac3e7e5f88132810f0608fa447d263a603f9"
        hex"02bd6e801d6c6e08ac7e12469c0abebb4d253caeefa417d91f62c44ea35709dbbb90716cebcbd023784f9d4ed1c2fccf0063bee8a553e93a46bfd43e3d451d8c6e2cd106b67c834efb37e2123f301442453af8c8ade6986c85156d34abb7ec4a";
    /// @dev MEMBER to the power 492: the first coefficient ends as that of the identity does.
    bytes internal constant LIKE_THE_IDENTITY = hex"057e9500bfc6b5c0464cf95f7c8edf78b378dfea61580df694bcb3b3c8a758407af88fd6b676b37cdd8d03478c45ea010463c89a34a0f29c7f264f4b57312bc5940029c788faf16cb2119abc44a1900177d16c4a2c3ecb40b0f146b27881d528"
        hex"08232f79503c7a179b4d419eda00f8272529d90e052f1d6a5d07f53485e57ae2cf3084fefea4dd0ca5485a5c59230feb0d694f7720563f1311359bb702df2dec8754c7396bd680f57fe9dac895f7c0639175184a12bca2d30be79cb458adbff3"
        hex"09a86c92967e235c58495cfe13435774d2b0c366bc229a7ef975d66934b6dea58c4ba7b7d6e15b8a7ae5af71441dc7d5078e929f7f9876bf1e676b400d31952cc50a228bddd1ee0f5cfa71b1acb4a3c73ca4339a8ed464ed1763269e099d00e7"
        hex"0af184b15679d72a43e985c7d16c43477efdd9b8a371672c78c8c8c5e0e46cbe2ed57e8fbc132be913de3f7182f7b644040e1b1bf4345886ffcbbb3ceaf9ec811c7afbbeeb1ae31f04ddfc7e7f3ccfd1ed1af5d2ba25a31c923c5fd0f8a54896"
        hex"0ce760420cdb567015fac75616f88eb592b1608d4dcded10b62f84fbea4c59cd9adc66210bfbc74fa9891ada87caa1360b03a26a0ee7ea4deb5ea50007b20967a90b49b3dc8c32a26b090fa69ae1033b599f7ab26879c1d2457f26924d0a703d"
        hex"07b30367c5d7b35774d644358b04522d031ba2f1b167f2b923409caf9df88431996b343c1ac4620b96abb6ec9b542bb2114bd114f76b2c72fb15c7eddefa37d18015d08f1b3b8afc099bf95e97a1fe47957bd05672c858ed9ece65f5abe0dfd5";
    /// @dev MEMBER without the last factor: of the cyclotomic subgroup, not of GT.
    bytes internal constant CYCLOTOMIC = hex"01e3b607825fce0a5241dbe723184406606e94bb7701894dfcf6bc0cf7623337ede4b102bba29cafb9847b6d5f065a400c21ade476d545c9972e83250331a89e7e9a1c336962c4e65307d267fdb96051cf70ac71a5a2fe6b204d5853b0023c2a"
        hex"1171f190a7b638698031960472c45733d24c42e9b76c8c42bafa87449b231ac5b75d650ed6bd89d779cc72d5b1a71ef81294196648fbfbad60e366ca2dec5c8d90abe9323acc7ed22c36ec156e4b4ab47e464607e3d26d818d977009823e214e"
        hex"05359f4f30c729ac56e659a2d0458f6288d30dcaf63c7edcd1155fe9ec43ca46208a2fe1a820fe3bcfc8a3b6dcb21056167279300318697969fde5fd0f93b4f9686200a498d1a00b022cb03111401f7520a9a27469a8878c22585c624f5ac7f7"
        hex"025ff1c454cab13856d134439adb05b6d16ce0d71528c01d65b1f5bd20144dd15f69fa450191aaa547b26c54465929bd01535f8ef3ebdbab4a74280ed74dcca5d4f38df41121648ceae2988c5adaaf128a8043efe720575c9c2f3701edc4d066"
        hex"07dfb8e4308394f726c08e03a9cc847ba1f93a5bf0c4eaee63f707daf2f5ae043759f49c5aac5dc426151fd0f8b7737308862e23be6e530693de0c5cd7c157b7231d843e3d8b52f1476041bfb13ab677058a9f43f222bd2bb7255a6a9c13ecd6"
        hex"04c304caa2d92746d1f861f27ebeea97473db7646ee93a2dd40704da3e090199bd9a614e6a604fc0a73ecd1a900824d00a5f72b3ca9e4d06ce1efa4907719d1cd03e4c171f76ee49692283e6883f9379264edb40310b053dfa0444c6d2117e55";

    EncryptionKeyVerifier internal verifier;

    function setUp() public {
        verifier = new EncryptionKeyVerifier();
    }

    function testAnElementOfGt() public {
        bytes memory key = MEMBER;
        check(verifier.isEncryptionKey(key), "member");
        vm.snapshotGasLastCall("EncryptionKeyVerifier.isEncryptionKey");
    }

    /// @dev Squares there would be right, powers by the Frobenius map wrong.
    function testTheCyclotomicSubgroupIsNotEnough() public view {
        check(!verifier.isEncryptionKey(CYCLOTOMIC), "cyclotomic");
    }

    function testOtherElementsOfTheField() public view {
        for (uint256 i = 0; i < 12; i++) {
            bytes memory key = MEMBER;
            key[48 * i + 47] ^= 0x01;
            check(!verifier.isEncryptionKey(key), "one coefficient changed");
        }
        bytes memory two = new bytes(576);
        two[47] = 0x02; // of the base field
        check(!verifier.isEncryptionKey(two), "two");
    }

    function testZeroAndTheIdentity() public view {
        bytes memory key = new bytes(576);
        check(!verifier.isEncryptionKey(key), "zero");
        key[47] = 0x01;
        check(!verifier.isEncryptionKey(key), "one");
        check(!verifier.isEncryptionKey(new bytes(575)), "shorter");
        check(!verifier.isEncryptionKey(new bytes(577)), "longer");
        check(!verifier.isEncryptionKey(""), "empty");
    }

    /// @dev Refused is the identity alone, and no other element whose first coefficient looks like 1 at its end.
    function testAnElementThatBeginsLikeTheIdentity() public view {
        check(verifier.isEncryptionKey(LIKE_THE_IDENTITY), "member");
        bytes memory key = LIKE_THE_IDENTITY;
        key[575] ^= 0x01;
        check(!verifier.isEncryptionKey(key), "not of GT");
    }

    /// @dev One encoding for each element: a coefficient that is not below p is no coefficient.
    function testCoefficientsAreReduced() public {
        bytes memory key = MEMBER;
        for (uint256 i = 0; i < 48; i++) {
            key[96 + i] = 0xff;
        }
        vm.expectRevert(abi.encodeWithSelector(GtResidues.CoefficientNotReduced.selector, 2));
        verifier.isEncryptionKey(key);
    }

    /// @dev Rule E-7.
    function testTheRegistryTakesNoOtherKey() public {
        deployContracts();
        registry = newRegistry(address(inbox), verifier, defaultSettings());
        CommitteeRegistry.Member[] memory members = committee(4);
        CommitteeRegistry.EpochParameters memory given = parameters(10, 3);
        given.encryptionKey = CYCLOTOMIC;
        vm.prank(GOVERNOR);
        vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.BadEncryptionKey.selector));
        registry.registerEpoch(given, members);
        given.encryptionKey = MEMBER;
        vm.prank(GOVERNOR);
        registry.registerEpoch(given, members);
        vm.snapshotGasLastCall("CommitteeRegistry.registerEpoch, 4 members");
        checkEqual(registry.encryptionKey(1), MEMBER, "key");
        checkEqual(registry.h1(1), BlsSigner.G2_GENERATOR, "h1");
    }

    function testTheLargestCommitteeFitsOneTransaction() public {
        deployContracts();
        registry = newRegistry(address(inbox), verifier, defaultSettings());
        CommitteeRegistry.Member[] memory members = committee(64);
        CommitteeRegistry.EpochParameters memory given = parameters(EPOCH_LAST, 43);
        given.encryptionKey = MEMBER;
        vm.prank(GOVERNOR);
        registry.registerEpoch(given, members);
        uint256 gas = vm.snapshotGasLastCall("CommitteeRegistry.registerEpoch, 64 members");
        // 64 · 384 bytes of calldata at 16 gas come on top; EIP-7825 caps a transaction at 2^24.
        check(gas + 64 * 384 * 16 + 100_000 < 1 << 24, "above the cap");
    }
}
